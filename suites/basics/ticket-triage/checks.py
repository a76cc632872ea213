"""Business rule of the triage."""

OWNERS = {"billing": "Ada", "login": "Ben", "crash": "Cleo"}


def validate(ticket):
    """The owner fits the category."""
    owner = OWNERS[ticket["category"]]
    if ticket["owner"] != owner:
        return f"tickets of category {ticket['category']} belong to {owner}, not {ticket['owner']}"
    return None


def preview(ticket):
    """Facts about the draft."""
    category = ticket.get("category")
    return (
        f"Category {category} belongs to {OWNERS.get(category, 'nobody')};"
        f" you wrote {ticket.get('owner')}."
        f" Priority: {ticket.get('priority')}."
    )
