package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// loadTimeout is the wall time of loading weights, unless ctx allows less.
const loadTimeout = 30 * time.Minute

// Load makes the server answer with the weights of a model folder, which it must see
// under the same path, in place of what it has loaded:
//
//   - vLLM by collective_rpc of reload_weights, which it serves with
//     VLLM_SERVER_DEV_MODE=1 in its environment, and an emptied prefix cache;
//   - SGLang by update_weights_from_disk;
//   - transformers serve by the folder as the model's name. What it has loaded it
//     forgets, and the next sample finds the folder.
//
// OpenAI's API has no such call. No samples may be under way.
func (s *Server) Load(ctx context.Context, folder string) error {
	switch s.API {
	case VLLM:
		reload := map[string]any{"method": "reload_weights", "kwargs": map[string]any{"weights_path": folder}}
		if err := s.Post(ctx, s.beside("/collective_rpc"), reload); err != nil {
			return fmt.Errorf("%w: does it run with VLLM_SERVER_DEV_MODE=1?", err)
		}
		return s.Post(ctx, s.beside("/reset_prefix_cache"), nil)
	case SGLang:
		return s.Post(ctx, s.beside("/update_weights_from_disk"), map[string]any{"model_path": folder})
	case Transformers:
		if err := s.Post(ctx, s.beside("/reset"), nil); err != nil {
			return err
		}
		s.Model = folder
		return nil
	}
	return fmt.Errorf("the API %q has no call that loads weights: name one of %v, or a command or address that reloads the server", s.API, APIs[1:])
}

// Post sends JSON to an address of the server, with its key, attempts and budget, for an
// answer that says no more than whether it was done.
func (s *Server) Post(ctx context.Context, url string, content any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("model server: %w", err)
	}
	_, err = s.exchange(ctx, loadTimeout, url, body, func(text []byte) (usage, *CallError) {
		var answer struct {
			Success *bool
			Message string
		}
		if json.Unmarshal(text, &answer) == nil && answer.Success != nil && !*answer.Success {
			return usage{}, &CallError{Fault: Refused, Message: answer.Message}
		}
		return usage{}, nil
	})
	return err
}
