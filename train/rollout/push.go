package rollout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"caper/model"
)

// Update implements Source: the weights are written, an adapter merged into them, and the
// server is made to load them.
func (s *Server) Update(ctx context.Context, m *model.Model, step int) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.StepTimeout)
	defer cancel()
	folder := filepath.Join(s.o.Folder, fmt.Sprintf("step-%d", step))
	err := write(m, folder)
	if err == nil {
		err = s.load(ctx, folder)
	}
	if err != nil {
		return fmt.Errorf("weights of step %d to the model server: %w", step, err)
	}
	s.version = step
	return s.forget(folder)
}

// write writes a whole model.
func write(m *model.Model, folder string) error {
	if err := os.RemoveAll(folder); err != nil { // of a run that was stopped
		return err
	}
	if m.Adapter == nil || m.Adapter.Merged() {
		return m.SaveAs(folder, model.Format{})
	}
	adapter := folder + "-adapter"
	defer os.RemoveAll(adapter)
	if err := m.SaveAs(adapter, model.Format{}); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	return model.Export(adapter, folder, model.Format{})
}

func (s *Server) load(ctx context.Context, folder string) error {
	switch {
	case s.o.Reload == "":
		return s.server.Load(ctx, folder)
	case isAddress(s.o.Reload):
		return s.server.Post(ctx, s.o.Reload, map[string]any{"model_path": folder})
	}
	command := exec.CommandContext(ctx, "sh", "-c", s.o.Reload)
	command.Env = append(os.Environ(), "CAPER_POLICY="+folder)
	command.WaitDelay = time.Second // a server that it started may keep its output open
	if out, err := command.CombinedOutput(); err != nil && err != exec.ErrWaitDelay {
		return fmt.Errorf("%s: %w: %s", s.o.Reload, err, strings.TrimSpace(string(out)))
	}
	return s.awake(ctx)
}

// awake waits until the server answers, which one that was started anew does late.
func (s *Server) awake(ctx context.Context) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(s.server.URL, "/")+"/models", nil)
		if err != nil {
			return err
		}
		if s.server.Key != "" {
			request.Header.Set("Authorization", "Bearer "+s.server.Key)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", request.URL, ctx.Err())
		case <-time.After(time.Second / 2):
		}
	}
}

// forget removes the weights of other steps.
func (s *Server) forget(kept string) error {
	entries, err := os.ReadDir(s.o.Folder)
	for _, e := range entries {
		if folder := filepath.Join(s.o.Folder, e.Name()); strings.HasPrefix(e.Name(), "step-") && folder != kept {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}
	return err
}
