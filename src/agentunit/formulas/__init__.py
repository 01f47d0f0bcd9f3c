"""Pure math and text: plain functions of numbers, strings, lists and graphs. They read nothing and know no trace."""
