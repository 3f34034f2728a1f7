"""What a settings file may look like, and paths in it that lead nowhere."""

from __future__ import annotations

import pytest

from cambist.settings import SettingsError
from cambist.settings_file import load_settings

NOBODYS = "expected a path, and this one begins with a user who has no home directory"


@pytest.fixture
def load(tmp_path):
    def loaded(content: str | bytes):
        file = tmp_path / "cambist.toml"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return load_settings(file, {})

    return loaded


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("[keys]\nkeystore = '~nobody-at-all/k.json'", f"keys.keystore: {NOBODYS}."),
        ("data_dir = '~nobody-at-all'", f"data_dir: {NOBODYS}."),
        ("[redis]\nurl = { file = '~nobody-at-all/url' }", f"~nobody-at-all/url, which is none: {NOBODYS}."),
        ('data_dir = "a\\u0000b"', "data_dir: expected a path."),
        ('[redis]\nurl = { file = "a\\u0000b" }', "which is none: expected a path."),
        ("[redis]\nurl = { file = '' }", "which is none: expected a path."),
    ],
)
def test_a_path_that_leads_nowhere_is_told_with_its_setting(load, text, sentence):
    with pytest.raises(SettingsError) as raised:
        load(text)
    assert "cambist.toml: " in str(raised.value)
    assert str(raised.value).endswith(sentence)


def test_a_file_may_begin_with_a_byte_order_mark_and_end_its_lines_in_two_characters(load):
    assert load(b"\xef\xbb\xbf[web]\r\nport = 8123\r\n").web.port == 8123
