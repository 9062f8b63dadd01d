// Package sluice asks a decider of Sluice about requests, with Go's standard library alone.
//
//	npx @sluice/cli serve --document policies.yaml --dialect json
package sluice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Request describes the request to decide.
type Request struct {
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path"`
	IP      string            `json:"ip,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Keys    map[string]string `json:"keys,omitempty"`
	Tiers   map[string]string `json:"tiers,omitempty"`
	// Cost in units; nil is 1.
	Cost *int `json:"cost,omitempty"`
}

// Decision is the outcome for a request.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Status for the client, where it is refused: 429, 403, 503 or 400.
	Status    int    `json:"status"`
	DecidedBy string `json:"decidedBy"`
	Reason    string `json:"reason"`
	// RetryAfterMs is nil where no wait helps.
	RetryAfterMs *int64 `json:"retryAfterMs"`
	// Headers for the response to the client, and Body where it is refused.
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// Client asks one decider. It may be used by several goroutines at a time.
type Client struct {
	url   string
	token string
	http  *http.Client
}

// NewClient makes a client for a decider such as http://127.0.0.1:9190. The token may be empty.
func NewClient(url, token string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// The decider closes a connection that has idled for 75 s.
	transport.IdleConnTimeout = time.Minute
	// Longer than the decider waits for Redis.
	client := &http.Client{Timeout: 2 * time.Second, Transport: transport}
	return &Client{url: url + "/v1/decide", token: token, http: client}
}

// Decide decides on one request. An error means that there is no decision, and the caller chooses whether to admit the request.
func (client *Client) Decide(ctx context.Context, request Request) (Decision, error) {
	var decision Decision
	err := client.ask(ctx, request, &decision)
	return decision, err
}

// DecideAll decides on up to 100 requests, in their order.
func (client *Client) DecideAll(ctx context.Context, requests []Request) ([]Decision, error) {
	var answer struct {
		Decisions []Decision `json:"decisions"`
	}
	err := client.ask(ctx, map[string][]Request{"requests": requests}, &answer)
	if err == nil && len(answer.Decisions) != len(requests) {
		err = fmt.Errorf("sluice: %d decisions on %d requests", len(answer.Decisions), len(requests))
	}
	return answer.Decisions, err
}

func (client *Client) ask(ctx context.Context, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, client.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	// Sent once: a second time could count the request twice.
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	if client.token != "" {
		request.Header.Set("Authorization", "Bearer "+client.token)
	}
	response, err := client.http.Do(request)
	if err != nil {
		return fmt.Errorf("sluice: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return fmt.Errorf("sluice: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("sluice: %s: %.200s", response.Status, text)
	}
	return json.Unmarshal(text, answer)
}
