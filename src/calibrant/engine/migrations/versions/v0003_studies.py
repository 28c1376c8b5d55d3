"""Tuning: studies and their trials."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "calibrant_studies",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "calibrant_trials",
        sa.Column("study", sa.Text, sa.ForeignKey("calibrant_studies.name"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("batch", sa.Integer, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("objective", sa.Double),
        sa.Column("rungs", sa.Text, nullable=False),
        sa.Column("cost", sa.Double, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("created", sa.Text, nullable=False),
    )
