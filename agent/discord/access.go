package discord

import (
	"errors"
	"slices"
	"strings"
)

// access says whom the bot answers. In a guild, the guild must be named, and, where
// users are named, the user as well. In direct messages the user must be named.
type access struct{ guilds, users []string }

// errNobody is the configuration in which nobody is answered.
var errNobody = errors.New("discord: nobody is allowed to use the bot: name guilds, users, or both, by their ids")

func newAccess(guilds, users []string) (access, error) {
	a := access{guilds, users}
	if len(guilds) == 0 && len(users) == 0 {
		return a, errNobody
	}
	for _, id := range slices.Concat(guilds, users) {
		if id == "" || strings.Trim(id, "0123456789") != "" {
			return a, errors.New("discord: " + id + ": an id is a number; Discord shows it in its developer mode")
		}
	}
	return a, nil
}

func (a access) allows(guild, user string) bool {
	if guild == "" {
		return slices.Contains(a.users, user)
	}
	return slices.Contains(a.guilds, guild) && (len(a.users) == 0 || slices.Contains(a.users, user))
}
