package mail

// DraftID is draftID.
func DraftID(key, account, from string) string { return draftID(key, account, from) }
