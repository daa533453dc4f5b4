package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"caper/solve"
)

// A question comes back with its candidates, what was mended, the vote and the rows.
func TestAsk(t *testing.T) {
	server := serving(t, shopService(t))
	status, a := request(t, "POST", server.URL+"/api/ask", asked(askMakers))
	if status != 200 {
		t.Fatalf("%d %v", status, a)
	}
	rows := fmt.Sprint(a["result"].(map[string]any)["rows"])
	if rows != "[[Volvo] [Saab]]" || a["sql"] != scripts[askMakers][0] || a["state"] != "clean" || a["why"] == "" {
		t.Errorf("rows %s of %v: %v, %v", rows, a["sql"], a["state"], a["why"])
	}
	states, repaired, chosen := map[any]int{}, 0, 0
	for _, c := range a["candidates"].([]any) {
		c := c.(map[string]any)
		states[c["state"]]++
		if r, ok := c["repairs"].([]any); ok {
			repaired++
			if of := r[0].(map[string]any)["of"]; of == c["sql"] {
				t.Errorf("%v mended into itself", of)
			}
		}
		if c["chosen"] == true {
			chosen++
		}
	}
	if len(a["candidates"].([]any)) != 5 || states["rejected"] == 0 || repaired == 0 || chosen != 1 {
		t.Errorf("%v, %d repaired, %d chosen", states, repaired, chosen)
	}
	if cost := a["cost"].(map[string]any); cost["calls"] != 1.0 || cost["executions"].(float64) < 4 || !(cost["ms"].(float64) > 0) {
		t.Errorf("cost %v", cost)
	}
}

// Queries that a request brings are candidates as others are.
func TestAskWithCandidates(t *testing.T) {
	s := shopService(t)
	s.Generators = nil
	server := serving(t, s)
	status, a := request(t, "POST", server.URL+"/api/ask", asked("How many cars?", "SELECT count(*) FROM cars"))
	if status != 200 || !strings.HasPrefix(fmt.Sprint(a["sql"]), "SELECT count(*) FROM car AS") || fmt.Sprint(a["result"].(map[string]any)["rows"]) != "[[5]]" {
		t.Errorf("%d %v", status, a)
	}
	status, a = request(t, "POST", server.URL+"/api/ask", asked("How many cars?"))
	if status != 422 || !strings.Contains(fmt.Sprint(a["error"]), "--generator") {
		t.Errorf("without anybody who writes queries: %d %v", status, a)
	}
}

// What was written for a question is found whatever its case, spaces and last mark are.
func TestKnownCandidates(t *testing.T) {
	s := shopService(t)
	s.Generators = nil
	written, _, _ := scripts.Generate(context.Background(), question(Question{Database: "shop", Text: askMakers}))
	s.Known = map[Question][]solve.Candidate{Question{Database: "shop", Text: askMakers}.Normal(): written}
	server := serving(t, s)
	for text, want := range map[string]int{askMakers: 200, "  which MAKERS are\nfrom Sweden ": 200, "Which makers are not from Sweden?": 422} {
		if status, a := request(t, "POST", server.URL+"/api/ask", asked(text)); status != want {
			t.Errorf("%q: %d %v", text, status, a)
		}
	}
}

// Cells keep their kind; what JSON or a browser would change is a text, and long ones are
// cut.
func TestCells(t *testing.T) {
	server := serving(t, shopService(t))
	status, a := request(t, "POST", server.URL+"/api/ask", asked("?", "SELECT value FROM odd ORDER BY id", "SELECT value FROM odd"))
	if status != 200 {
		t.Fatalf("%d %v", status, a)
	}
	var cells []any
	for _, row := range a["result"].(map[string]any)["rows"].([]any) {
		cells = append(cells, row.([]any)[0])
	}
	want := []any{hostile, "a\u202eb", strings.Repeat("x", DefaultLimits().Cell) + "…", "x'00ff'", "9007199254740993", nil, 0.5, "Inf"}
	for i := range want {
		if i >= len(cells) || cells[i] != want[i] {
			t.Errorf("cells %.60q, want %.60q", cells, want)
			break
		}
	}
}

// Clauses partition the query, and each has a score; the same by question and by schema.
func TestScore(t *testing.T) {
	s := shopService(t)
	const query = "SELECT name FROM maker WHERE country = 'Sweden'"
	body := fmt.Sprintf(`{"db_id":"shop","question":%q,"sql":[%q,"DROP TABLE maker",""]}`, askMakers, query)
	if status, a := request(t, "POST", serving(t, s).URL+"/api/score", body); status != 501 {
		t.Errorf("without a model: %d %v", status, a)
	}
	s = shopService(t)
	s.Scorer = rewardModel(t, s.Bench)
	server := serving(t, s)
	status, a := request(t, "POST", server.URL+"/api/score", body)
	if status != 200 {
		t.Fatalf("%d %v", status, a)
	}
	queries := a["queries"].([]any)
	first := queries[0].(map[string]any)
	text := ""
	for _, c := range first["clauses"].([]any) {
		c := c.(map[string]any)
		text += c["text"].(string)
		if _, ok := c["score"].(float64); !ok || query[int(c["start"].(float64)):int(c["end"].(float64))] != c["text"] {
			t.Errorf("%v", c)
		}
	}
	if _, ok := first["score"].(float64); !ok || text != query || len(first["clauses"].([]any)) != 3 || len(queries) != 3 {
		t.Errorf("%v", a)
	}

	prompt, err := s.Bench.Prompt(question(Question{Database: "shop", Text: askMakers}))
	if err != nil {
		t.Fatal(err)
	}
	schema, _, _ := strings.Cut(prompt, "question: ")
	status, b := request(t, "POST", server.URL+"/api/score", fmt.Sprintf(`{"schema":%q,"question":%q,"sql":[%q]}`, schema, askMakers, query))
	if status != 200 || fmt.Sprint(b["queries"].([]any)[0]) != fmt.Sprint(first) {
		t.Errorf("by the schema: %d %v, not %v", status, b, first)
	}
}

// Each mistake has a status and a reason, and reveals no path.
func TestRefusals(t *testing.T) {
	s := shopService(t)
	server := serving(t, s)
	ask := server.URL + "/api/ask"
	for _, c := range []struct {
		name, method, url, body string
		headers                 []string
		status                  int
		says                    string
	}{
		{"no JSON", "POST", ask, "SELECT 1", nil, 400, "request"},
		{"two documents", "POST", ask, asked("a") + asked("b"), nil, 400, "more than one"},
		{"unknown field", "POST", ask, `{"db":"shop"}`, nil, 400, "db"},
		{"wrong type", "POST", ask, `{"db_id":5}`, nil, 400, "db_id"},
		{"deep", "POST", ask, `{"db_id":` + strings.Repeat("[", 20_000), nil, 400, "request"},
		{"no question", "POST", ask, asked("  "), nil, 400, "question"},
		{"long question", "POST", ask, asked(strings.Repeat("a", 5000)), nil, 400, "4000"},
		{"huge body", "POST", ask, asked(strings.Repeat("a", 8<<20)), nil, 413, "bytes"},
		{"many candidates", "POST", ask, asked("a", strings.Split(strings.Repeat("SELECT 1;", 65), ";")...), nil, 400, "candidates"},
		{"a form", "POST", ask, "db_id=shop", []string{"Content-Type: application/x-www-form-urlencoded"}, 415, "application/json"},
		{"another database", "POST", ask, `{"db_id":"../../etc/passwd","question":"a"}`, nil, 404, "no such database"},
		{"a path", "GET", server.URL + "/api/databases/..%2f..%2fetc%2fpasswd", "", nil, 404, "no such database"},
		{"a path up", "GET", server.URL + "/..%2f..%2fetc/passwd", "", nil, 404, "/"},
		{"a file of the source", "GET", server.URL + "/serve.go", "", nil, 404, ""},
		{"wrong method", "GET", ask, "", nil, 405, "POST"},
		{"wrong place", "POST", server.URL + "/", asked("a"), nil, 405, "GET"},
		{"another name", "GET", server.URL + "/api/databases", "", []string{"Host: evil.example"}, 421, "localhost"},
		{"another name with our port", "POST", ask, asked("a"), []string{"Host: localhost.evil.example:80"}, 421, "localhost"},
		{"another site", "POST", ask, asked("a"), []string{"Origin: http://evil.example"}, 403, "site"},
		{"a page of no site", "POST", ask, asked("a"), []string{"Origin: null"}, 403, "site"},
	} {
		status, a := request(t, c.method, c.url, c.body, c.headers...)
		text := fmt.Sprint(a["error"])
		if status != c.status || !strings.Contains(text, c.says) || strings.Contains(text, s.Bench.Dir) {
			t.Errorf("%s: %d %q, want %d and %q", c.name, status, text, c.status, c.says)
		}
	}
	for _, query := range []string{
		"ATTACH '/etc/passwd' AS p", "SELECT load_extension('x')", "PRAGMA writable_schema = 1", "DELETE FROM maker", "DROP TABLE maker; SELECT 1", "SELECT readfile('/etc/passwd')",
		"SELECT randomblob(1e9)", "SELECT \x00", strings.Repeat("(", 5000), forever,
	} {
		status, a := request(t, "POST", ask, asked("a", query))
		if status != 200 || a["state"] == "clean" {
			t.Errorf("%.40q: %d %v %v", query, status, a["state"], a["message"])
		}
	}
	if status, a := request(t, "POST", ask, asked(askMakers)); status != 200 || a["state"] != "clean" {
		t.Errorf("after all that: %d %v", status, a)
	}
}

// The page's headers let a browser run nothing but its own script, and no other site read
// anything.
func TestHeaders(t *testing.T) {
	server := serving(t, shopService(t))
	for _, path := range []string{"/", "/page.js", "/style.css", "/api/databases", "/healthz", "/nothing"} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		h := response.Header
		if policy := h.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestToken(t *testing.T) {
	s := shopService(t)
	s.Token = "secret"
	server := serving(t, s)
	for _, c := range []struct {
		path   string
		header string
		status int
	}{
		{"/api/databases", "A: b", 401}, {"/api/databases", "Authorization: Bearer wrong", 401}, {"/api/databases", "Authorization: secret", 401},
		{"/api/databases", "Authorization: Bearer secret", 200}, {"/healthz", "A: b", 200},
	} {
		if status, a := request(t, "GET", server.URL+c.path, "", c.header); status != c.status {
			t.Errorf("%s with %s: %d %v", c.path, c.header, status, a)
		}
	}
	for path, want := range map[string]int{"/": 200, "/metrics": 401} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
}

// A proxy's name is taken where it is named, and then only that and the machine's own.
func TestHosts(t *testing.T) {
	s := shopService(t)
	s.Hosts = []string{"sql.example.org"}
	server := serving(t, s)
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{"sql.example.org", "https://sql.example.org", 200}, {"SQL.example.org:443", "", 200}, {"localhost:9", "", 200}, {"[::1]:80", "", 200},
		{"sql.example.org", "https://evil.example", 403}, {"evil.example", "", 421}, {"127.0.0.1.evil.example", "", 421},
	} {
		headers := []string{"Host: " + c.host}
		if c.origin != "" {
			headers = append(headers, "Origin: "+c.origin)
		}
		if status, a := request(t, "POST", server.URL+"/api/ask", asked(askMakers), headers...); status != c.status {
			t.Errorf("%+v: %d %v", c, status, a["error"])
		}
	}
}

// Two hundred at once: those there is room for are answered, the others are told to come
// again, and neither memory nor connections grow.
func TestCrowd(t *testing.T) {
	s := shopService(t)
	s.Limits.Together, s.Limits.Waiting = 2, 20
	server := serving(t, s)
	client := &http.Client{Transport: &http.Transport{}}
	ask := func(body string) int {
		response, err := client.Post(server.URL+"/api/ask", "application/json", strings.NewReader(body))
		if err != nil {
			return 0
		}
		defer response.Body.Close()
		io.Copy(io.Discard, response.Body)
		if response.StatusCode == 503 && response.Header.Get("Retry-After") == "" {
			t.Error("told to come again, but not when")
		}
		return response.StatusCode
	}
	ask(asked(askMakers))
	var before, peak runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most atomic.Uint64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&peak)
				most.Store(max(most.Load(), peak.HeapAlloc))
			}
		}
	})
	var mu sync.Mutex
	statuses := map[int]int{}
	var crowd sync.WaitGroup
	// Each candidate gives ten thousand rows.
	big := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i, 'row ' || i FROM n"
	for i := range 200 {
		crowd.Go(func() {
			status := ask(asked("a", fmt.Sprintf("%s WHERE i <> %d", big, i)))
			mu.Lock()
			statuses[status]++
			mu.Unlock()
		})
	}
	crowd.Wait()
	close(stop)
	watch.Wait()
	if statuses[200]+statuses[503] != 200 || statuses[200] < 22 || statuses[503] == 0 {
		t.Errorf("%v", statuses)
	}
	const room = 128 << 20
	if grown := most.Load() - min(before.HeapAlloc, most.Load()); grown > room {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	t.Logf("%v, heap at most %d MiB, %d before", statuses, most.Load()>>20, before.HeapAlloc>>20)
	if status := ask(asked(askMakers)); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
}

// Who sends slowly, or says nothing, is let go, and keeps nobody out.
func TestSlowClients(t *testing.T) {
	s := shopService(t)
	s.Limits.Patience = 300 * time.Millisecond
	address, _ := running(t, s)
	var slow []net.Conn
	for _, start := range []string{"", "POST /api/ask HTTP/1.1\r\nHost: localhost\r\n", "POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"} {
		for range 8 {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, start)
			slow = append(slow, conn)
		}
	}
	if status, a := request(t, "POST", "http://"+address+"/api/ask", asked(askMakers)); status != 200 {
		t.Errorf("beside slow clients: %d %v", status, a)
	}
	for i, conn := range slow {
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Errorf("client %d is still there", i)
		}
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// running runs a service as the command does. stop ends it as a signal would, and waits.
func running(t *testing.T, s *Service) (address string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return l.Addr().String(), stop
}

// What is under way when the service is told to stop is answered; nothing new is.
func TestGracefulEnd(t *testing.T) {
	s := shopService(t)
	s.Generators = nil
	address, stop := running(t, s)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := asked("a", forever) // two seconds
	fmt.Fprintf(conn, "POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	time.Sleep(200 * time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%v %v", response, err)
	}
	text, _ := io.ReadAll(response.Body)
	if !bytes.Contains(text, []byte("timeout")) {
		t.Errorf("%.200q", text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("it still listens")
	}
}

// A question that is not answered in time, and one whose asker has gone, take no turn for
// longer than that.
func TestTimeLimit(t *testing.T) {
	s := shopService(t)
	s.Generators = []solve.Generator{stalled{}}
	s.Limits.Time, s.Limits.Together = 200*time.Millisecond, 1
	server := serving(t, s)
	for range 3 {
		if status, a := request(t, "POST", server.URL+"/api/ask", asked("a")); status != 504 || !strings.Contains(fmt.Sprint(a["error"]), "time limit") {
			t.Errorf("%d %v", status, a)
		}
	}

	patient := shopService(t)
	patient.Generators = []solve.Generator{stalled{}}
	patient.Limits.Time, patient.Limits.Together = time.Hour, 1
	server = serving(t, patient)
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/api/ask", strings.NewReader(asked("a")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	for end := time.Now().Add(20 * time.Second); len(patient.turns) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a request whose client has gone still has its turn")
		}
	}
}

// Counts agree with what was asked.
func TestMetrics(t *testing.T) {
	server := serving(t, shopService(t))
	request(t, "POST", server.URL+"/api/ask", asked(askMakers))
	request(t, "POST", server.URL+"/api/ask", "nonsense")
	response, err := http.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`caper_serve_requests_total{status="200"} 1`, `caper_serve_requests_total{status="400"} 1`, "caper_serve_request_seconds_count 2",
		`caper_serve_candidates_total{state="rejected"} 2`, "caper_serve_model_calls_total 1",
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
