// Package serve answers questions over HTTP: a page for people, and JSON for programs.
// It reads databases and changes nothing.
//
//	serve.go     what is served, and by whom
//	answer.go    a question: candidates, repairs, the vote, the result
//	score.go     scores of the clauses of given queries
//	schema.go    which databases there are
//	guard.go     who may ask, how much and how often
//	metrics.go   counts for Prometheus
//	page/        the page
package serve

import (
	"context"
	"embed"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"caper/data"
	"caper/solve"
)

// Service answers questions about the databases of a benchmark.
type Service struct {
	Bench *data.Benchmark
	// Generators write candidates; without any, whoever asks brings them.
	Generators []solve.Generator
	Repairer   *solve.Repairer
	Select     solve.Options
	// Known are candidates that were written before, by Normal question.
	Known map[Question][]solve.Candidate
	// Examples are questions that the page offers.
	Examples []Question
	// Scorer scores clauses; nil: they have no scores. It may be Select's judge as well.
	Scorer *solve.RewardJudge
	// Token, if there is one, has to come with each request of the API.
	Token string
	// Hosts are names, in small letters, by which a proxy in front of it asks on loopback.
	Hosts  []string
	Limits Limits

	ids     func() ([]string, error) // of databases, once read
	turns   chan struct{}
	waiting chan struct{}
	counts  counts
}

// Limits bound what requests may take.
type Limits struct {
	// Body is the most bytes of a request, Patience how long one may take to arrive.
	Body     int64
	Patience time.Duration
	// Time is the wall time of a request, waiting for its turn included.
	Time time.Duration
	// Together requests are worked on at a time, and Waiting more wait for their turn;
	// further ones are told to come again. Connections beyond their number are closed.
	Together, Waiting, Connections int
	// Candidates that a request may bring, Rows and Cell bytes of a result that are shown.
	Candidates, Rows, Cell int
}

// DefaultLimits returns 64 KiB in ten seconds, a minute of work, four requests at a time, 64
// waiting, 512 connections, 64 candidates, 100 rows, 300 bytes of a cell.
func DefaultLimits() Limits {
	return Limits{
		Body: 64 << 10, Patience: 10 * time.Second, Time: time.Minute, Together: 4, Waiting: 64, Connections: 512,
		Candidates: 64, Rows: 100, Cell: 300,
	}
}

// Question is what is asked.
type Question struct {
	Database string `json:"db_id"`
	Text     string `json:"question"`
	Evidence string `json:"evidence,omitempty"`
}

// Normal is the question whatever its case, spaces and last mark are.
func (q Question) Normal() Question {
	plain := func(text string) string {
		return strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(text), " ")), " ?.!")
	}
	return Question{q.Database, plain(q.Text), plain(q.Evidence)}
}

//go:embed page
var files embed.FS

// Handler serves the page and the API.
func (s *Service) Handler() http.Handler {
	s.turns, s.waiting = make(chan struct{}, s.Limits.Together), make(chan struct{}, s.Limits.Waiting)
	s.ids = sync.OnceValues(s.Bench.DatabaseIDs)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		replyError(w, refuse(http.StatusNotFound, "there is nothing at %s", r.URL.Path))
	})
	serve := func(method, path string, h http.HandlerFunc) {
		mux.HandleFunc(method+" "+path, h)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", method)
			replyError(w, refuse(http.StatusMethodNotAllowed, "%s is no method here: use %s", r.Method, method))
		})
	}
	for path, file := range map[string]string{"/{$}": "index.html", "/page.js": "page.js", "/style.css": "style.css"} {
		serve("GET", path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page/"+file) })
	}
	serve("GET", "/healthz", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	serve("GET", "/metrics", s.authorised(s.metrics))
	serve("GET", "/api/databases", s.authorised(s.databases))
	serve("GET", "/api/databases/{id}", s.authorised(s.schema))
	serve("POST", "/api/ask", s.authorised(s.worked(s.ask)))
	serve("POST", "/api/score", s.authorised(s.worked(s.score)))
	return s.counted(secured(s.sameHost(mux)))
}

// Serve serves on a listener until ctx ends; requests under way then have some seconds
// to end.
func (s *Service) Serve(ctx context.Context, l net.Listener) error {
	const grace = 10 * time.Second
	patience := s.Limits.Patience
	working, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: 2*patience + s.Limits.Time,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ConnState: crowd(s.Limits.Connections),
		BaseContext: func(net.Listener) context.Context { return working },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(working, grace)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		abandon()
		err = server.Close()
	}
	return err
}
