"""Mean embeddings and the generators that are trained to meet them: DP-MERF, DP-HP."""
