// Package ledger keeps what outlives a request: leases, results, and claims on idempotency
// keys, by which services on one store agree on who runs what. Sweep removes what expired.
package ledger
