package serve

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a headless Chromium under the DevTools protocol: JSON messages, each ended by
// a NUL, on its descriptors 3 (to it) and 4 (from it).
type browser struct {
	to      *os.File
	mu      sync.Mutex
	last    int
	replies map[int]chan reported
	events  []reported
	session string
}

// reported is a message of the browser: the reply with an id, or an event.
type reported struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startBrowser skips the test where there is no Chromium.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no browser here: install chromium to test the page")
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile := t.TempDir()
	cmd := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--hide-scrollbars", "--user-data-dir="+profile, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+profile, "TMPDIR="+profile)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{to: to, replies: map[int]chan reported{}}
	t.Cleanup(func() {
		b.send("Browser.close", nil)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
		to.Close()
		from.Close()
	})
	go b.listen(bufio.NewReader(from))
	var target struct{ TargetID string }
	b.must(t, "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.must(t, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.must(t, domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) listen(from *bufio.Reader) {
	for {
		text, err := from.ReadBytes(0)
		if err != nil {
			return
		}
		var m reported
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if reply := b.replies[m.ID]; reply != nil {
			delete(b.replies, m.ID)
			reply <- m
		} else {
			b.events = append(b.events, m)
		}
		b.mu.Unlock()
	}
}

// send sends a command; its reply comes on the channel.
func (b *browser) send(method string, params any) (<-chan reported, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{b.last, b.session, method, params})
	if err != nil {
		return nil, err
	}
	reply := make(chan reported, 1)
	b.replies[b.last] = reply
	_, err = b.to.Write(append(text, 0))
	return reply, err
}

// do sends a command and waits for its reply.
func (b *browser) do(method string, params, into any) error {
	reply, err := b.send(method, params)
	if err != nil {
		return err
	}
	select {
	case m := <-reply:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if into != nil {
			return json.Unmarshal(m.Result, into)
		}
		return nil
	case <-time.After(60 * time.Second):
		return errors.New(method + ": no reply from the browser")
	}
}

func (b *browser) must(t *testing.T, method string, params, into any) {
	t.Helper()
	if err := b.do(method, params, into); err != nil {
		t.Fatal(err)
	}
}

// window makes the window so wide and so many points high, in a colour scheme.
func (b *browser) window(t *testing.T, width, height int, scheme string) {
	t.Helper()
	b.must(t, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.must(t, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// open goes to an address and waits until holds is true there.
func (b *browser) open(t *testing.T, url, holds string) {
	t.Helper()
	b.must(t, "Page.navigate", map[string]any{"url": url}, nil)
	b.wait(t, holds)
}

// evaluate returns what an expression of JavaScript gives.
func (b *browser) evaluate(t *testing.T, expression string) any {
	t.Helper()
	var out struct {
		Result struct{ Value any }
		Fault  *struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	b.must(t, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	if out.Fault != nil {
		t.Fatalf("%s: %s %s", expression, out.Fault.Text, out.Fault.Exception.Description)
	}
	return out.Result.Value
}

// wait waits until an expression is true.
func (b *browser) wait(t *testing.T, holds string) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if b.evaluate(t, "Boolean("+holds+")") == true {
			return
		}
	}
	t.Fatalf("it never came to %s; the page says: %v", holds, b.evaluate(t, "document.body.innerText"))
}

// picture writes a picture of the whole page to the folder of CAPER_SCREENSHOTS, if that is set.
func (b *browser) picture(t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("CAPER_SCREENSHOTS")
	if folder == "" {
		return
	}
	var shot struct{ Data []byte }
	b.must(t, "Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	if err := os.WriteFile(filepath.Join(folder, name+".png"), shot.Data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// complaints are the errors that the page has met: exceptions, refused resources, violations
// of the policy. Answers with an error status are none.
func (b *browser) complaints() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		text := string(e.Params)
		switch e.Method {
		case "Runtime.exceptionThrown", "Page.javascriptDialogOpening":
			all = append(all, text)
		case "Log.entryAdded":
			if strings.Contains(text, `"level":"error"`) && !strings.Contains(text, "the server responded with a status of") {
				all = append(all, text)
			}
		}
	}
	return all
}
