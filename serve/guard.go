package serve

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"caper/data"
)

// failure is an error that is the asker's to see, with its status.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func refuse(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// reply writes a JSON document.
func reply(w http.ResponseWriter, status int, value any) {
	text, err := data.Marshal(value)
	if err != nil {
		log.Printf("caper serve: an answer is no JSON: %v", err)
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer is no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) // whoever has gone does not read it
}

// replyError writes an error: {"error": "..."}. What is not the asker's doing goes to the
// log: it may name files.
func replyError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var f *failure
	switch {
	case errors.As(err, &f):
		status = f.status
	case errors.Is(err, context.DeadlineExceeded):
		status, err = http.StatusGatewayTimeout, errors.New("the time limit of a request is over: ask something simpler, or start caper serve with a longer --request-time")
	case errors.Is(err, context.Canceled): // whoever asked has gone
		status = http.StatusServiceUnavailable
	default:
		log.Printf("caper serve: %v", err)
		err = errors.New("the service failed: its log says why")
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	reply(w, status, map[string]string{"error": err.Error()})
}

// secured adds the headers by which a browser runs nothing but the page's own script.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// sameHost refuses what other sites make a browser ask: by a name that they point to this
// machine, or from a page of theirs.
func (s *Service) sameHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if ok && local.IP.IsLoopback() && !s.isOurs(r.Host) {
			replyError(w, refuse(http.StatusMisdirectedRequest, "host %q: this service is asked as localhost, or by a name that --host gives", r.Host))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
				replyError(w, refuse(http.StatusForbidden, "origin %q: pages of other sites may not ask", origin))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isOurs reports that a Host header names this machine, or is one of Hosts.
func (s *Service) isOurs(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || slices.Contains(s.Hosts, host)
}

// authorised asks for the token.
func (s *Service) authorised(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.Token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			replyError(w, refuse(http.StatusUnauthorized, "the token is missing or wrong: send it as Authorization: Bearer TOKEN"))
			return
		}
		next(w, r)
	}
}

// worked answers with what work makes of the request's document. So many are worked on at
// a time; reading comes before, so that who sends slowly keeps nobody waiting.
func (s *Service) worked(work func(ctx context.Context, body []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := s.body(w, r)
		if err != nil {
			replyError(w, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.Limits.Time)
		defer cancel()
		release, err := s.takeTurn(ctx)
		if err != nil {
			replyError(w, err)
			return
		}
		answer, err := func() (any, error) { // whoever reads slowly keeps nobody waiting either
			defer release()
			return work(ctx, body)
		}()
		if err != nil {
			replyError(w, err)
			return
		}
		reply(w, http.StatusOK, answer)
	}
}

func (s *Service) takeTurn(ctx context.Context) (release func(), err error) {
	release = func() { <-s.turns }
	select {
	case s.turns <- struct{}{}:
		return release, nil
	default:
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return nil, refuse(http.StatusServiceUnavailable, "%d requests are worked on and %d wait: ask again later", cap(s.turns), cap(s.waiting))
	}
	select {
	case s.turns <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// body reads a request's document.
func (s *Service) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type %q: send application/json", r.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.Limits.Body))
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", s.Limits.Body)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the request did not come whole: %v", err)
	}
	return text, nil
}

// decode reads the one JSON document of a request.
func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.Decode(new(json.RawMessage)) != io.EOF {
		err = errors.New("more than one JSON document")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "request: %v", data.PlainJSONError(err))
	}
	return nil
}

// checkTexts refuses a question that is none, or too long.
func checkTexts(q Question) error {
	const most = 4000 // bytes of a question and of its evidence
	switch {
	case strings.TrimSpace(q.Text) == "":
		return refuse(http.StatusBadRequest, "question: missing")
	case len(q.Text) > most || len(q.Evidence) > most:
		return refuse(http.StatusBadRequest, "question and evidence: at most %d bytes each", most)
	}
	return nil
}

// crowd closes new connections where there are so many.
func crowd(most int) func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > int64(most) {
				c.Close()
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}
