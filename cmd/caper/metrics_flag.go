package main

import (
	"fmt"
	"os"

	"caper/report/prometheus"
)

// metricsFlag is what trainings offer for watching them from elsewhere.
type metricsFlag struct {
	MetricsAddr string `help:"Serve the newest metrics to Prometheus at /metrics of this address, on this machine only: 127.0.0.1:9090. Default: not at all." placeholder:"HOST:PORT"`
}

// serve starts to serve the metrics of a run folder, if asked to. stop ends that.
func (f metricsFlag) serve(run string) (stop func(), err error) {
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
