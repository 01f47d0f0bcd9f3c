"""In which language a text is, and the metric that compares the languages of question and answer."""
