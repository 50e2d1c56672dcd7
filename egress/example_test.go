package egress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"notebox/egress"
)

// A proxy for programs that may reach package indexes over HTTPS, and nothing else.
func Example() {
	hosts, err := egress.ParseHosts([]string{"*.packages.example:443"})
	if err != nil {
		panic(err)
	}
	proxy, err := egress.New(egress.Options{Hosts: hosts, MaxBytes: 100 << 20})
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		proxy.Serve(ctx, "run_1", listener)
		close(ended)
	}()

	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: listener.Addr().String()})}}
	res, err := client.Get("http://169.254.169.254/latest/meta-data/")
	if err != nil {
		panic(err)
	}
	text, _ := io.ReadAll(res.Body)
	fmt.Printf("%d %s", res.StatusCode, text)
	end()
	<-ended
	// Output: 403 notebox: no connection to "169.254.169.254": it is not among the hosts that this service's operator allows
}
