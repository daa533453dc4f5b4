// Package prometheus serves the metrics of a run in the text format of Prometheus
// (version 0.0.4, prometheus.io/docs/instrumenting/exposition_formats).
package prometheus

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"caper/report/series"
)

// Prefix begins the name of every gauge.
const Prefix = "caper_train_"

// contentType names the format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Handler answers with the last value of every field of the metrics of a run folder, as
// a gauge: the first part of the field's name is the gauge's, the rest the label of, and
// place i of a list of counts has the label of="i". The file is read when asked.
func Handler(run string) http.Handler { return &handler{metrics: series.NewReader(run)} }

type handler struct {
	mu      sync.Mutex
	metrics *series.Reader
	last    map[string]map[string]float64 // by gauge and label
}

func (h *handler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text, err := h.text()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Write(text)
}

func (h *handler) text() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines, anew, err := h.metrics.Next()
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a run that has not begun has no gauges
		return nil, err
	}
	if anew || h.last == nil {
		h.last = map[string]map[string]float64{}
	}
	for _, line := range lines {
		h.take(line)
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(h.last)) {
		fmt.Fprintf(&text, "# TYPE %s gauge\n", name)
		for _, of := range slices.Sorted(maps.Keys(h.last[name])) {
			label := ""
			if of != "" {
				label = `{of="` + escape.Replace(of) + `"}`
			}
			fmt.Fprintf(&text, "%s%s %s\n", name, label, strconv.FormatFloat(h.last[name][of], 'g', -1, 64))
		}
	}
	return text.Bytes(), nil
}

// take replaces the gauges that a line has, with all their labels.
func (h *handler) take(line series.Line) {
	seen := map[string]bool{}
	set := func(path string, value float64) {
		name, of, _ := strings.Cut(path, "/")
		name = Prefix + strings.Map(legal, name)
		if !seen[name] {
			seen[name], h.last[name] = true, map[string]float64{}
		}
		h.last[name][of] = value
	}
	set("step", float64(line.Step))
	for _, v := range line.Values {
		set(v.Name, v.Number)
	}
	for _, c := range line.Counts {
		for i, n := range c.Counts {
			set(c.Name+"/"+strconv.Itoa(i), n)
		}
	}
}

// legal keeps the characters that a gauge's name may have.
func legal(r rune) rune {
	if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
		return r
	}
	return '_'
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Serve answers at /metrics of an address, HOST:PORT, until stop is called. The address
// must be of this machine's loopback: metrics are served without a password. at is the
// address with the port that port 0 came to be.
func Serve(address, run string) (at string, stop func() error, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, fmt.Errorf("metrics address %q: want HOST:PORT, as in 127.0.0.1:9090", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", nil, fmt.Errorf("metrics address %q: want 127.0.0.1, ::1 or localhost; others reach it through a tunnel or a proxy that asks who they are", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("metrics address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", Handler(run))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	return listener.Addr().String(), server.Close, nil
}
