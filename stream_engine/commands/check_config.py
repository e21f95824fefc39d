"""`stream-engine check-config`: validate a configuration file and print the effective settings."""

import json

import click

from stream_engine.input.settings import loading as configuration


@click.command("check-config")
@click.argument("file")
def command(file: str) -> None:
    """Validate a configuration file and print the effective settings."""
    from stream_engine.input.source_checks import check_runnable

    settings = configuration.load(file, {})
    check_runnable(settings)
    if settings.http.tls_certificate is not None:
        from stream_engine.service.http.certificate import Certificate

        Certificate(settings.http.tls_certificate, settings.http.tls_key)
    fact = "keys and values are valid (to check columns, use `stream-engine preview`)"
    click.echo(f"{file}: {fact}; the effective settings, including defaults:", err=True)
    click.echo(json.dumps(configuration.plain_settings(settings), indent=1, ensure_ascii=False))
