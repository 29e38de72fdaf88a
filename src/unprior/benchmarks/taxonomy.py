"""The 14 subcategories of CDH-Bench, which microworld and the synthetic tables share."""

from __future__ import annotations

SUBCATEGORIES: tuple[tuple[str, str, int], ...] = (
    ("Counting Anomalies", "Body Parts", 25),
    ("Counting Anomalies", "Animal Parts", 25),
    ("Counting Anomalies", "Plant Structure", 25),
    ("Counting Anomalies", "Everyday Objects", 25),
    ("Relational Anomalies", "Animal Behavior", 20),
    ("Relational Anomalies", "Object Function", 20),
    ("Relational Anomalies", "Spatial", 20),
    ("Relational Anomalies", "Size Scale", 20),
    ("Relational Anomalies", "Causality", 20),
    ("Attribute Anomalies", "Color", 25),
    ("Attribute Anomalies", "Material", 25),
    ("Attribute Anomalies", "Temperature", 20),
    ("Attribute Anomalies", "Physical State", 15),
    ("Attribute Anomalies", "Luminescence/Transparency", 15),
)
"""Category, subcategory and number of pairs, in the order of the pair numbers: 300 pairs."""

DEV_PAIRS_PER_SUBCATEGORY = 5
"""The lowest-numbered pairs of every subcategory are for development: 70 dev and 230 test pairs."""
