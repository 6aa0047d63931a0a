"""Scripts of the figures: ``python -m scripts.papers.li2023_tab2``, or all by reproduce.py."""
