"""A pipeline of `diffusers`, tiny and untrained, as a pair's decoder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed here")
transformers = pytest.importorskip("transformers", reason="diffusers needs it")

from torch import Tensor, nn  # noqa: E402

from sfumato.public import view_catalogue  # noqa: E402
from sfumato.public.pair import Pair, load_pair  # noqa: E402
from sfumato.public.provenance import Provenance  # noqa: E402
from sfumato.public.single_image_view import SingleImageNetwork  # noqa: E402

SIZE = 32


def unclip(folder: Path) -> str:
    """Write a Stable unCLIP pipeline, from its configuration alone."""
    torch.manual_seed(0)
    words = ["<|startoftext|>", "<|endoftext|>", "a</w>", "b</w>"]
    (folder / "vocab.json").write_text(json.dumps({word: at for at, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    text = transformers.CLIPTextConfig(
        hidden_size=SIZE, projection_dim=SIZE, intermediate_size=16, num_attention_heads=2,
        num_hidden_layers=1, vocab_size=10, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    vision = transformers.CLIPVisionConfig(
        hidden_size=SIZE, projection_dim=SIZE, intermediate_size=16, num_attention_heads=2,
        num_hidden_layers=1, image_size=16, patch_size=8,
    )  # fmt: skip
    pipeline = diffusers.StableUnCLIPImg2ImgPipeline(
        feature_extractor=transformers.CLIPImageProcessor(crop_size=16, size=16),
        image_encoder=transformers.CLIPVisionModelWithProjection(vision),
        image_normalizer=(
            diffusers.pipelines.stable_diffusion.StableUnCLIPImageNormalizer(embedding_dim=SIZE)
        ),
        image_noising_scheduler=diffusers.DDPMScheduler(beta_schedule="squaredcos_cap_v2"),
        tokenizer=transformers.CLIPTokenizer(
            str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=8
        ),
        text_encoder=transformers.CLIPTextModel(text),
        unet=diffusers.UNet2DConditionModel(
            sample_size=8, in_channels=4, out_channels=4, block_out_channels=(32, 64),
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), attention_head_dim=(2, 4),
            class_embed_type="projection", projection_class_embeddings_input_dim=2 * SIZE,
            cross_attention_dim=SIZE, layers_per_block=1,
        ),
        scheduler=diffusers.DDIMScheduler(),
        vae=diffusers.AutoencoderKL(block_out_channels=(32,), norm_num_groups=8),
    )  # fmt: skip
    place = folder / "pipeline"
    pipeline.save_pretrained(place)
    (place / "README.md").write_text("---\nlicense: openrail++\n---\n")
    return str(place)


def test_an_image_variation_pipeline_decodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Averages(nn.Module):
        def forward(self, pictures: Tensor) -> Tensor:
            return nn.functional.adaptive_avg_pool2d(pictures, (4, 3)).flatten(1)[:, :SIZE]

    about = Provenance(name="averages", source="a test", digest="0" * 64, licence="CC0")
    network = SingleImageNetwork(Averages(), about, 8, (0.5,), (0.3,))
    monkeypatch.setattr(view_catalogue, "_OWN", {"averages": network})
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
    made = Pair.train(
        images, name="own", source="a test", licence="CC0", network="float:averages", dim=4,
        decoder=f"diffusers:{unclip(tmp_path)}",
    )  # fmt: skip
    made.save(tmp_path / "own.pair")
    pair = load_pair(tmp_path / "own.pair")
    assert pair.inputs[2].licence == "openrail++"
    assert "StableUnCLIPImg2ImgPipeline" in pair.inputs[2].in_words()
    drawn = pair.decode(pair.features[:2], 0)
    assert drawn.shape == (2, 8, 8, 3)
    assert np.array_equal(drawn, made.decode(made.features[:2], 0))
