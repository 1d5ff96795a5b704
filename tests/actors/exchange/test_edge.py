from __future__ import annotations

import random

import pytest

from actors.exchange.edge import Inlet, Outlet
from state.errors import ProtocolError
from tests.actors.flow import barrier, files


def test_messages_come_out_in_the_order_they_were_sent_whatever_order_they_arrive_in() -> None:
    outlet, inlet = Outlet("a"), Inlet(["a"])
    envelopes = [outlet.send(barrier(n)) for n in range(50)]
    expected = [each.message for each in envelopes]
    random.Random(7).shuffle(envelopes)
    assert [message for each in envelopes for message in inlet.receive(each)] == expected
    assert inlet.gaps() == {}


def test_a_message_that_comes_twice_is_an_error_before_and_after_its_turn() -> None:
    outlet, inlet = Outlet("a"), Inlet(["a"])
    first, second = outlet.send(files("x")), outlet.send(files("y"))
    assert inlet.receive(second) == []
    with pytest.raises(ProtocolError, match="message 1 came twice"):
        inlet.receive(second)
    inlet.receive(first)
    with pytest.raises(ProtocolError, match="message 0 came twice"):
        inlet.receive(first)


def test_a_gap_is_named() -> None:
    outlet, inlet = Outlet("a"), Inlet(["a", "b"])
    outlet.send(files("lost"))
    inlet.receive(outlet.send(files("x")))
    assert inlet.gaps() == {"a": 0}


def test_credit_limits_what_is_in_flight_and_comes_back() -> None:
    outlet = Outlet("a", credit_bytes=100)
    outlet.reserve(80)
    assert not outlet.may_send(30)
    assert outlet.may_send(20)
    outlet.grant(80)
    assert outlet.may_send(100)


def test_a_message_larger_than_the_credit_passes_when_the_edge_is_empty() -> None:
    outlet = Outlet("a", credit_bytes=100)
    assert outlet.may_send(1_000)
    outlet.reserve(1_000)
    assert not outlet.may_send(1)


def test_more_credit_back_than_was_taken_is_an_error() -> None:
    outlet = Outlet("a", credit_bytes=100)
    outlet.reserve(10)
    with pytest.raises(ProtocolError, match="more credit"):
        outlet.grant(11)
