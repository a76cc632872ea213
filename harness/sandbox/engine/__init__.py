"""A container engine that speaks Docker's API, as far as the machines of tasks need it."""
