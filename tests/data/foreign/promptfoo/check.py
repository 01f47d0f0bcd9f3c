raise SystemExit("this file must never be run")
