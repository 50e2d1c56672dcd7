package native

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"notebox/environments"
	"notebox/executor"
	"notebox/server/web"
)

// EnvironmentList is the answer of GET /v1/environments.
type EnvironmentList struct {
	Environments []environmentEntry `json:"environments"`
	Limits       limitsEntry        `json:"limits"`
}

type environmentEntry struct {
	Name          string                 `json:"name"`
	Language      string                 `json:"language"`
	Aliases       []string               `json:"aliases"`
	Default       bool                   `json:"default"`
	Available     bool                   `json:"available"` // its image is installed
	DisplayName   string                 `json:"display_name"`
	Kernel        string                 `json:"kernel"`
	FileExtension string                 `json:"file_extension"`
	MediaTypes    []string               `json:"media_types"`
	Packages      []environments.Package `json:"packages"`
	Notes         []string               `json:"notes"`
	Dependencies  *dependenciesEntry     `json:"dependencies,omitempty"` // of requests; nil: they can have none
}

// dependenciesEntry says which packages requests may ask for.
type dependenciesEntry struct {
	Notation string   `json:"notation"`          // pip, npm or apt
	Allowed  []string `json:"allowed,omitempty"` // the only ones; none: all
}

// limitsEntry is what one run may use. Sizes are bytes, times seconds.
type limitsEntry struct {
	Timeout    float64 `json:"timeout_seconds"`
	MaxTimeout float64 `json:"max_timeout_seconds"`
	Memory     int64   `json:"memory_bytes"`
	CPUs       float64 `json:"cpus"`
	Pids       int64   `json:"pids"`
	DataSize   int64   `json:"data_bytes"`
	TmpSize    int64   `json:"tmp_bytes"`
	Output     int64   `json:"output_bytes"`
	Files      int     `json:"max_files"`
	FileSize   int64   `json:"max_files_bytes"`
	MaxBody    int64   `json:"max_body_bytes"`
	MaxUpload  int64   `json:"max_upload_bytes"`
	MaxInputs  int     `json:"max_inputs"`
	Network    bool    `json:"network"`

	Sessions      bool    `json:"sessions"`
	SessionTTL    float64 `json:"session_ttl_seconds"`
	MaxSessionTTL float64 `json:"max_session_ttl_seconds"`
	SessionIdle   float64 `json:"session_idle_seconds"`
}

// listEnvironments answers GET /v1/environments.
func (s *handler) listEnvironments(c echo.Context) error {
	l := s.Limits
	answer := EnvironmentList{Limits: limitsEntry{
		Timeout: min(l.Timeout, s.MaxTimeout).Seconds(), MaxTimeout: s.MaxTimeout.Seconds(),
		Memory: l.Memory, CPUs: l.CPUs, Pids: l.Pids, DataSize: l.DataSize, TmpSize: l.TmpSize,
		Output: l.Output, Files: l.Files, FileSize: l.FileSize,
		MaxBody: s.MaxBody, MaxUpload: s.MaxUpload, MaxInputs: executor.MaxInputs,
		Network: s.Network != nil,
	}}
	if s.Executor.SessionsOffered() == nil {
		times := s.Executor.SessionTimes()
		answer.Limits.Sessions = true
		answer.Limits.SessionTTL, answer.Limits.MaxSessionTTL = times.TTL.Seconds(), times.MaxTTL.Seconds()
		answer.Limits.SessionIdle = times.Idle.Seconds()
	}
	caller := web.Caller(c)
	for i, e := range s.Environments {
		if !caller.Sees(e.Name, e.Language) {
			continue
		}
		var installs *dependenciesEntry
		if s.Executor.CanInstall(&e) {
			installs = &dependenciesEntry{e.Dependencies.Notation, s.Dependencies.Allowed()}
		}
		answer.Environments = append(answer.Environments, environmentEntry{
			Name: e.Name, Language: e.Language, Aliases: append([]string{}, e.Aliases...), Default: i == 0, Available: s.Available(e.Name),
			DisplayName: e.DisplayName, Kernel: e.Kernel.Name, FileExtension: e.FileExtension,
			MediaTypes: append([]string{}, e.MediaTypes...), Packages: append([]environments.Package{}, e.Packages...), Notes: append([]string{}, e.Notes...), Dependencies: installs,
		})
	}
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
}
