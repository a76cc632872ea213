"""One made-up credential for each rule: a rule without one fails the tests."""

from __future__ import annotations

import base64
from dataclasses import dataclass

_HEX = "0123456789abcdef" * 8
_MIXED = "a1B2c3D4e5F6g7H8i9J0" * 8


@dataclass(frozen=True)
class Planted:
    """A credential, and the text that makes it one where its shape alone does not."""

    secret: str
    before: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        """The credential in its surroundings."""
        return f"{self.before}{self.secret}{self.after}"


def _assigned(name: str, secret: str) -> Planted:
    return Planted(secret, f"{name}=")


PLANTED: dict[str, Planted] = {
    "Anthropic key": Planted("sk-ant-api03-" + _MIXED[:93] + "AA"),
    "OpenAI key, and others of its form": Planted("sk-proj-" + _MIXED[:60]),
    "Google API key": Planted("AIza" + _MIXED[:35]),
    "Google authorization key": Planted("AQ.Ab8" + _MIXED[:50]),
    "Google OAuth token": Planted("ya29.a0" + _MIXED[:60]),
    "Google OAuth client secret": Planted("GOCSPX-" + _MIXED[:28]),
    "Hugging Face token": Planted("hf_" + _MIXED[:34]),
    "Groq key": Planted("gsk_" + _MIXED[:52]),
    "xAI key": Planted("xai-" + _MIXED[:80]),
    "Cerebras key": Planted("csk-" + _MIXED[:48].lower()),
    "Perplexity key": Planted("pplx-" + _MIXED[:48]),
    "Replicate token": Planted("r8_" + _MIXED[:37]),
    "NVIDIA key": Planted("nvapi-" + _MIXED[:64]),
    "LangSmith key": Planted(f"lsv2_pt_{_HEX[:32]}_{_HEX[:10]}"),
    "Pinecone key": Planted("pcsk_" + _MIXED[:60]),
    "Tavily key": Planted("tvly-" + _MIXED[:32]),
    "AWS access key id": Planted("AKIA" + _MIXED[:16].upper()),
    "AWS secret access key": _assigned("aws_secret_access_key", _MIXED[:39] + "/"),
    "AWS Bedrock key": Planted("ABSK" + _MIXED[:120]),
    "Azure connection string": Planted(_MIXED[:86] + "==", "Endpoint=sb://x/;AccountKey=", ";"),
    "Azure OpenAI key": Planted(_MIXED[:52] + "JQQJ99" + _MIXED[:26]),
    "Azure client secret": Planted("a1b8Q~" + _MIXED[:34]),
    "DigitalOcean token": Planted("dop_v1_" + _HEX[:64]),
    "Databricks token": Planted("dapi" + _HEX[:32]),
    "Vault token": Planted("hvs." + _MIXED[:40]),
    "Supabase token": Planted("sbp_" + _HEX[:40]),
    "age key": Planted("AGE-SECRET-KEY-1" + _MIXED[:58].upper()),
    "GitHub token": Planted("ghp_" + _MIXED[:36]),
    "GitHub fine-grained token": Planted(f"github_pat_{_MIXED[:22]}_{_MIXED[:59]}"),
    "GitLab token": Planted("glpat-" + _MIXED[:20]),
    "npm token": Planted("npm_" + _MIXED[:36]),
    "PyPI token": Planted("pypi-AgEIcHlwaS5vcmc" + _MIXED[:60]),
    "RubyGems key": Planted("rubygems_" + _HEX[:48]),
    "Docker token": Planted("dckr_pat_" + _MIXED[:27]),
    "Postman key": Planted(f"PMAK-{_HEX[:24]}-{_HEX[:34]}"),
    "Sentry token": Planted("sntrys_" + _MIXED[:60]),
    "Grafana service token": Planted("glsa_" + _MIXED[:32]),
    "Grafana cloud token": Planted("glc_" + _MIXED[:60]),
    "Slack token": Planted("xoxb-123456789012-" + _MIXED[:24]),
    "Slack app token": Planted("xapp-1-" + _MIXED[:40]),
    "Slack webhook": Planted(
        f"T0{_MIXED[:8]}/B0{_MIXED[:8]}/{_MIXED[:24]}", "https://hooks.slack.com/services/"
    ),
    "Discord webhook": Planted(_MIXED[:68], f"https://discord.com/api/webhooks/{'1' * 18}/"),
    "Telegram bot token": Planted("1234567890:AA" + _MIXED[:33]),
    "Stripe key": Planted("sk_live_" + _MIXED[:24]),
    "Stripe webhook secret": Planted("whsec_" + _MIXED[:32]),
    "Twilio key": Planted("SK" + _HEX[:32]),
    "SendGrid key": Planted(f"SG.{_MIXED[:22]}.{_MIXED[:43]}"),
    "Mailgun key": Planted("key-" + _HEX[:32]),
    "Shopify token": Planted("shpat_" + _HEX[:32]),
    "Square token": Planted("sq0atp-" + _MIXED[:22]),
    "Linear key": Planted("lin_api_" + _MIXED[:40]),
    "Notion token": Planted("ntn_" + _MIXED[:46]),
    "Figma token": Planted("figd_" + _MIXED[:40]),
    "Atlassian token": Planted("ATATT3" + _MIXED[:100]),
    "JSON Web Token": Planted(f"eyJ{_MIXED[:20]}.{_MIXED[:30]}.{_MIXED[:43]}"),
    "bearer token": Planted(_MIXED[:40], "Authorization: Bearer "),
    "basic authorization": Planted(
        base64.b64encode(b"user:pa55 word").decode(), "Authorization: Basic "
    ),
    "private key": Planted(
        f"-----BEGIN RSA PRIVATE KEY-----\n{_MIXED[:64]}\n{_MIXED[:64]}\n"
        "-----END RSA PRIVATE KEY-----"
    ),
    "password in a URL": Planted("s3cr3t!word", "postgres://bob:", "@db.example.com/x"),
    "credential in a query": Planted(_MIXED[:32], "https://example.com/x?api_key="),
    "random value in a query": Planted(_MIXED[:32], "https://example.com/x?a=1&key="),
    "value named as a secret": _assigned("client_secret", _MIXED[:30]),
    "secret in the environment": _assigned("DEPLOY_TOKEN", _MIXED[:30]),
    "value named as a password": _assigned("db_password", "correct-h0rse!"),
}
