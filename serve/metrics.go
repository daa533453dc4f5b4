package serve

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"caper/solve"
)

// counts are those of the requests so far.
type counts struct {
	mu       sync.Mutex
	statuses map[int]int
	underWay int
	seconds  float64
	states   map[solve.State]int // of candidates
	stages   map[solve.Stage]int // that decided questions
	cost     solve.Cost
}

// add counts a question that was answered.
func (c *counts) add(d *solve.Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stages == nil {
		c.stages, c.states = map[solve.Stage]int{}, map[solve.State]int{}
	}
	c.stages[d.Stage]++
	for i := range d.Candidates {
		c.states[d.Candidates[i].State]++
	}
	c.cost.Add(d.Cost)
}

// counted counts requests by their status.
func (s *Service) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &s.counts
		c.mu.Lock()
		c.underWay++
		c.mu.Unlock()
		began, seen := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.statuses == nil {
				c.statuses = map[int]int{}
			}
			c.underWay--
			c.statuses[seen.status]++
			c.seconds += time.Since(began).Seconds()
		}()
		next.ServeHTTP(seen, r)
	})
}

// statusWriter remembers the status that is written.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// metrics writes the counts in Prometheus' text format.
func (s *Service) metrics(w http.ResponseWriter, _ *http.Request) {
	c := &s.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	requests := 0
	for _, n := range c.statuses {
		requests += n
	}
	writeCounter(w, "caper_serve_requests_total", "status", c.statuses)
	fmt.Fprintf(w, "# TYPE caper_serve_request_seconds summary\ncaper_serve_request_seconds_sum %g\ncaper_serve_request_seconds_count %d\n", c.seconds, requests)
	fmt.Fprintf(w, "# TYPE caper_serve_requests_under_way gauge\ncaper_serve_requests_under_way %d\n", c.underWay)
	writeCounter(w, "caper_serve_questions_total", "stage", c.stages)
	writeCounter(w, "caper_serve_candidates_total", "state", c.states)
	fmt.Fprintf(w, "# TYPE caper_serve_executions_total counter\ncaper_serve_executions_total %d\n", c.cost.Executions)
	fmt.Fprintf(w, "# TYPE caper_serve_model_calls_total counter\ncaper_serve_model_calls_total %d\n", c.cost.Calls)
	fmt.Fprintf(w, "# TYPE caper_serve_model_calls_failed_total counter\ncaper_serve_model_calls_failed_total %d\n", c.cost.Failed)
}

// writeCounter writes one counter by a label.
func writeCounter[K cmp.Ordered](w io.Writer, name, label string, values map[K]int) {
	fmt.Fprintf(w, "# TYPE %s counter\n", name)
	for _, value := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(w, "%s{%s=\"%v\"} %d\n", name, label, value, values[value])
	}
}
