package egress

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Credential signs requests to one host in, in place of the programs that send them, which
// do not have it. It is for reading alone: of a request that is signed in nothing but its
// URL, GET or HEAD and the headers in kept go on.
type Credential struct {
	Scheme string // http or https
	Host   string // with its port: "packages.test:443"
	// Path is what it was named for. All of the host is signed in to, as an index has its
	// files elsewhere; of several credentials the one that shares most of a path is taken.
	Path          string
	Authorization string // the header's value
}

// kept are the headers of a request that is signed in. Others may change what it does, such
// as X-HTTP-Method-Override.
var kept = []string{
	"Accept", "Accept-Encoding", "Cache-Control", "If-Modified-Since", "If-None-Match", "If-Range", "Pragma", "Range", "User-Agent",
}

// errCredentials is why a host's answer is not passed on: a program could do nothing about it.
var errCredentials = errors.New("the host does not take the operator's credentials")

// credential returns what signs a request in; nil: nothing does.
func (p *Proxy) credential(u *url.URL) (best *Credential) {
	most := -1
	for i, c := range p.credentials {
		if c.Scheme == u.Scheme && sameHost(c.Host, withPort(u.Host, portOf[u.Scheme])) {
			if n := shared(c.Path, u.Path); n > most {
				best, most = &p.credentials[i], n
			}
		}
	}
	return best
}

// portOf is a scheme's port if a URL has none.
var portOf = map[string]string{"http": "80", "https": "443"}

// sameHost compares hosts with ports by their one form.
func sameHost(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB && canonical(bare(hostA)) == canonical(bare(hostB))
}

// shared counts the parts that two paths have in common at their beginning.
func shared(a, b string) (n int) {
	partsB := strings.Split(strings.Trim(b, "/"), "/")
	for i, part := range strings.Split(strings.Trim(a, "/"), "/") {
		if i >= len(partsB) || partsB[i] != part {
			break
		}
		n++
	}
	return n
}

// signIn makes what goes on of a request; c may be nil.
func (c *Credential) signIn(r *http.Request) {
	if c == nil {
		return
	}
	for name := range r.Header {
		if !slices.Contains(kept, name) {
			delete(r.Header, name)
		}
	}
	r.Header.Set("Authorization", c.Authorization)
	r.Body, r.ContentLength = nil, 0
}

// check refuses a request that may do more than read, or that may name another host; c may
// be nil.
func (c *Credential) check(r *http.Request) error {
	switch {
	case c == nil:
		return nil
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return &refusal{status: http.StatusMethodNotAllowed, text: "it is for GET and HEAD alone"}
	case r.URL.Opaque != "":
		// "GET x:http://other.test/" would go on as "GET http://other.test/", which a web
		// server of several hosts takes for one to the other.
		return &refusal{status: http.StatusBadRequest, text: "the request must name a path"}
	}
	return nil
}

// receive takes out of an answer what signs in as well; c may be nil.
func (c *Credential) receive(answer *http.Response) error {
	if c == nil {
		return nil
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return &refusal{status: http.StatusBadGateway, text: errCredentials.Error(), cause: errCredentials}
	}
	answer.Header.Del("Set-Cookie")
	return nil
}
