from agents.assembly import NoAgent
from agents.engine import errors
from agents.sentences import SENTENCES


def test_every_sentence_of_an_error_is_known_to_the_translators():
    kinds = [e for e in vars(errors).values() if isinstance(e, type)] + [NoAgent]

    said = {kind.__doc__ for kind in kinds} | {kind.advice for kind in kinds}

    assert said - set(SENTENCES) == set()
