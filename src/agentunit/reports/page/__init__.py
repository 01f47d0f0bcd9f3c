"""The style and the script of the HTML report."""
