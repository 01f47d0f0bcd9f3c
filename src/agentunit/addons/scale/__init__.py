"""More than one machine: Ray, PostgreSQL, files by address, tables of scores in Parquet."""
