"""Records, the provenance they share, and their items."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    code_points = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "calibrant_provenance",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "calibrant_records",
        sa.Column("cell", sa.Text, primary_key=True),
        sa.Column("problem", code_points, nullable=False),
        sa.Column("agent", code_points, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("scores", sa.Text, nullable=False),
        sa.Column("cost", sa.Text, nullable=False),
        sa.Column("provenance", sa.Text, sa.ForeignKey("calibrant_provenance.digest"), nullable=False),
    )
    op.create_index("calibrant_records_order", "calibrant_records", ["problem", "agent", "seed"])
    op.create_table(
        "calibrant_arrays",
        sa.Column("cell", sa.Text, sa.ForeignKey("calibrant_records.cell"), primary_key=True),
        sa.Column("items", sa.LargeBinary),
    )
