"""What the list of lights says, for the checks of all steps."""

LIGHTS = {
    "Skerry Head": ("Fl", 3, "white", 15),
    "Old Mole": ("Oc", 1, "red", 6),
    "Cormorant Rock": ("Fl", 1, "white", 5),
    "Harbour North": ("Iso", 1, "green", 4),
    "Harbour South": ("Iso", 1, "red", 4),
    "Longstone Bank": ("Q", 9, "white", 15),
    "Anvil Point": ("Fl", 2, "white", 10),
}
