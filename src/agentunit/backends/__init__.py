"""Where scores can come from besides formulas: models and services, found as installed packages."""
