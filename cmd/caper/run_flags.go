package main

import (
	"fmt"
	"os"

	"caper/report/prometheus"
)

// runFlags are what every training has beside its configuration.
type runFlags struct {
	MetricsAddr string `help:"Serve the newest metrics to Prometheus at /metrics of this address, on this machine only: 127.0.0.1:9090. Default: not at all." placeholder:"HOST:PORT"`
}

// start is called before a training in the given run folder. It serves the metrics, if
// asked to, until stop is called.
func (f runFlags) start(run string) (stop func(), err error) {
	if n := os.Getenv("WORLD_SIZE"); n != "" && n != "1" {
		return nil, usageError{fmt.Errorf("WORLD_SIZE=%s: caper trains in one process on one GPU; several would each train the whole run (docs/launching.md)", n)}
	}
	if f.MetricsAddr == "" {
		return func() {}, nil
	}
	at, end, err := prometheus.Serve(f.MetricsAddr, run)
	if err != nil {
		return nil, usageError{fmt.Errorf("--metrics-addr: %w", err)}
	}
	fmt.Fprintf(os.Stderr, "metrics: http://%s/metrics\n", at)
	return func() { end() }, nil
}
