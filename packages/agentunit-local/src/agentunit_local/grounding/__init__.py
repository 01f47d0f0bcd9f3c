"""How far an answer rests on its context: claims, evidence, comparison, and the model that reads both."""
