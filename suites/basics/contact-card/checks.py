"""Business rule of the contact card."""

import re


def validate(card):
    """Stored formats of e-mail address and phone number."""
    if card["email"] != card["email"].lower():
        return f"email must be {card['email'].lower()!r}"
    if not re.fullmatch(r"\+[1-9][0-9]{7,14}", card["phone"]):
        return f"phone {card['phone']!r} has spaces or dashes in it; only + and digits are stored"
    return None


def preview(card):
    """Facts about the draft."""
    phone, email = str(card.get("phone")), str(card.get("email"))
    others = sorted(set(re.sub(r"[0-9+]", "", phone)))
    return (
        f"phone {phone!r}: starts with '+': {'yes' if phone.startswith('+') else 'NO'};"
        f" characters that are not digits: {others or 'none'}."
        f" email {email!r}: lower case: {'yes' if email == email.lower() else 'NO'}."
    )
