"""The page that a one-time link leads to: somebody sets a password there, with a token that only the browser sees."""

from __future__ import annotations

import base64
import hashlib

from litestar import Controller, MediaType, Response, get

from cambist.services.identity import operators
from cambist_web.auth import public_routes

PASSWORD_PATH = "/set-password"  # noqa: S105  a path
JOIN_PATH = "/join"

_SCRIPT = """
const form = document.querySelector("form"), told = document.querySelector("output");
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (!token) { form.hidden = true; told.textContent = "This link is not complete. Copy it again, as a whole."; }
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const password = form.elements.password.value;
  if (password !== form.elements.again.value) { told.textContent = "The two passwords differ."; return; }
  form.elements.send.disabled = true;
  try {
    const answer = await fetch("ENDPOINT", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, password }),
    });
    const body = await answer.json();
    told.textContent = answer.ok ? body.message : body.error;
    form.hidden = answer.ok;
  } catch {
    told.textContent = "The gateway cannot be reached. Try again.";
  }
  form.elements.send.disabled = false;
});
"""
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:24rem;margin:4rem auto;padding:0 1rem}"
    "input,button{font:inherit;display:block;width:100%;box-sizing:border-box;margin:.25rem 0 1rem;padding:.5rem}"
)
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Set a password</title>
<style>STYLE</style>
<h1>Set a password</h1>
<form>
<label>Password<input name="password" type="password" autocomplete="new-password" maxlength="1024" required></label>
<label>Again<input name="again" type="password" autocomplete="new-password" maxlength="1024" required></label>
<button name="send">Set it</button>
</form>
<output role="status"></output>
<noscript>This page needs JavaScript.</noscript>
<script>SCRIPT</script>
</html>
"""


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _page(endpoint: str) -> Response[str]:
    """Return the page, which sends token and password there."""
    script = _SCRIPT.replace("ENDPOINT", endpoint)
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(_STYLE)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    page = _PAGE.replace("<style>STYLE<", f"<style>{_STYLE}<").replace("<script>SCRIPT<", f"<script>{script}<")
    return Response(page, media_type=MediaType.HTML, headers={"Content-Security-Policy": policy})


class PasswordPage(Controller):
    @get("/", include_in_schema=False)
    async def show(self) -> Response[str]:
        """Answer the same page to everybody: what is in the link stays in the browser."""
        return _page("/api/auth/password-reset/confirm")


class JoinPage(Controller):
    @get("/", include_in_schema=False)
    async def show(self) -> Response[str]:
        """Answer likewise, for the links by which people join a merchant's team."""
        return _page("/api/auth/invitations/accept")


class OperatorsPasswordPage(Controller):
    @get("/", include_in_schema=False)
    async def show(self) -> Response[str]:
        """Answer likewise, for the links of operators."""
        return _page("/api/admin/auth/set-password")


controllers = [
    public_routes(PASSWORD_PATH, PasswordPage),
    public_routes(JOIN_PATH, JoinPage),
    public_routes(operators.PASSWORD_PATH, OperatorsPasswordPage),
]
