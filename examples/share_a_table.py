"""From a private table to a synthetic one, with its guarantee."""

from __future__ import annotations

import sfumato as sf
from sfumato.datasets import patients, patients_schema


def main(rows: int = 20_000) -> sf.Model:
    """Fit, draw, and say what was promised."""
    schema = patients_schema()
    budget = sf.Budget(epsilon=1, delta=1e-6)
    made = sf.synthesize(patients(rows), schema, budget, method=sf.Pairs(target="readmitted"))
    print(made.data.slice(0, 5).to_pandas().to_string())
    guarantee = made.model.guarantee
    print(f"epsilon {guarantee.epsilon:.3g} (content: {guarantee.content_epsilon:.3g})")
    cardiac = made.model.sample(1000, given={"diagnosis": "cardiac"})  # free
    print(f"{cardiac.num_rows} more rows, all cardiac, at no cost")
    return made.model


if __name__ == "__main__":
    main()
