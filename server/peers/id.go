package peers

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"notebox/runner"
)

// An id is as long as a ULID, of its 26 characters, and sorts by time as one:
//
//	10  time of its making, in milliseconds; a service makes one id of each
//	 4  random
//	 6  MAC over the above and the address of its service
//	 6  MAC over all of the above, what it is an id of, and whose
//
// A MAC has 30 bits of HMAC-SHA256. Nobody can try one without asking a service, so that it
// takes half a billion requests to guess one, and little is won by that: a 410, or a peer
// that says 404, since a session is found by its whole id and by its owner. The first MAC
// tells the service to who has the secret and the addresses; of a thousand services, two are
// alike for one id of a million, and then one of them says that the session is over.
// Without the secret all but the time is unguessable, 80 bits, as it is in a ULID.
const (
	idLength = 26
	headEnd  = 14
	tagEnd   = 20
	macChars = idLength - tagEnd
)

// settleTime is how long a service's address may take to be known to its peers: a name
// server, and those that keep its answers, are late by so much.
const settleTime = time.Minute

// goneRetry is when to come back for a session whose service cannot be told now.
const goneRetry = 2 * time.Second

// Mint makes an id of this service for something of an owner's. what keeps ids of several
// kinds apart.
func (p *Peers) Mint(what, owner string) (string, error) {
	id, err := ulid.New(p.moment(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("id: %w", err)
	}
	begin := id.String()[:headEnd]
	begin += p.tag(begin, p.own)
	return begin + p.proof(what, owner, begin), nil
}

// moment is now in milliseconds, or the next one of which there is no id yet: so few random
// characters could be the same twice.
func (p *Peers) moment() uint64 {
	p.minting.Lock()
	defer p.minting.Unlock()
	p.minted = max(ulid.Timestamp(p.now()), p.minted+1)
	return p.minted
}

// tag names a service in an id that begins with head.
func (p *Peers) tag(head, address string) string { return characters(p.mac("service", head, address)) }

// proof shows that an id was made by a peer.
func (p *Peers) proof(what, owner, begin string) string {
	return characters(p.mac("id", what, owner, begin))
}

// alphabet is Crockford's base 32, as of a ULID.
const alphabet = ulid.Encoding

// characters are the first 30 bits of a MAC.
func characters(mac []byte) string {
	bits := binary.BigEndian.Uint32(mac) >> 2
	text := make([]byte, macChars)
	for i := range text {
		text[i] = alphabet[bits>>(5*(macChars-1-i))&31]
	}
	return string(text)
}

// Find tells where something is that is not here, by the id that Mint has made. It never
// returns nil: the error is runner.ErrNoSession if no peer has made the id for this owner, a
// *runner.ElsewhereError if a peer has it, a *runner.GoneError if the service is gone that
// had it or has it no more, and a *runner.Error if that cannot be told now.
func (p *Peers) Find(what, owner, id string) error {
	if len(id) != idLength || !hmac.Equal([]byte(id[tagEnd:]), []byte(p.proof(what, owner, id[:tagEnd]))) {
		return runner.ErrNoSession
	}
	head, tag := id[:headEnd], id[headEnd:tagEnd]
	is := func(address string) bool { return hmac.Equal([]byte(p.tag(head, address)), []byte(tag)) }
	if is(p.own) {
		return &runner.GoneError{Reason: runner.GoneService}
	}
	for _, age := range []time.Duration{keptFor, freshFor} {
		all, err := p.addresses(context.Background(), age)
		for _, address := range all {
			if is(address) {
				return &runner.ElsewhereError{Service: address}
			}
		}
		if err != nil && age == freshFor {
			return unknownNow(fmt.Errorf("the peers' addresses: %w", err))
		}
	}
	if made, err := ulid.ParseStrict(id); err == nil && p.now().Sub(ulid.Time(made.Time())).Abs() < settleTime {
		return unknownNow(errors.New("no address is that of a session that was opened just now: is --peer-address of each service what its peers see?"))
	}
	return &runner.GoneError{Reason: runner.GoneService}
}

// unknownNow is that a peer cannot be found now, and perhaps later.
func unknownNow(err error) error {
	return &runner.Error{Code: runner.CodeUnavailable, Message: "the service that has this session cannot be found at this time", RetryAfter: goneRetry, Err: err}
}
