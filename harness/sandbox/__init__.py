"""Running commands so that they see, and can harm, only what they are given."""
