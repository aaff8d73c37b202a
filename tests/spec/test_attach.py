"""The `attach:` section: certificates."""

from __future__ import annotations

from pathlib import Path

from tests.spec.written import GOOD, only_fault, read_text


def attached(more: str, scheme: str = "https") -> str:
    section = f"attach: {{baseline: '{scheme}://a', speculative: '{scheme}://b'{more}}}\n"
    return GOOD.replace("target: tiny\n", section).replace("[2, 4]", "2")


def test_a_certificate_is_found_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    read = read_text(tmp_path, attached(", tls_ca_file: ca.pem")).attach
    assert read is not None
    assert (read.tls_ca_file, read.tls_verify) == (str(tmp_path / "ca.pem"), True)
    fault = only_fault(tmp_path, attached(", tls_ca_file: none.pem"))
    assert (fault.key, fault.rule) == ("attach.tls_ca_file", "the file must exist")


def test_options_of_tls_must_act(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    plain = only_fault(tmp_path, attached(", tls_verify: false", scheme="http"))
    assert (plain.key, plain.rule) == ("attach.tls_verify", "acts only with an https:// address")
    both = only_fault(tmp_path, attached(", tls_verify: false, tls_ca_file: ca.pem"))
    assert both.key == "attach.tls_ca_file"
    assert "tls_verify: false" in both.rule
