-- +goose Up

-- Scopes that a source demands with a 403 (insufficient_scope, RFC 6750), and its
-- login lacks.

ALTER TABLE source_logins
    ADD COLUMN needed_scopes text[] NOT NULL DEFAULT '{}',
    ADD COLUMN needed_tools text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN source_logins.needed_scopes IS 'Scopes that the source demands and the login lacks; empty for none.';
COMMENT ON COLUMN source_logins.needed_tools IS 'Tools whose calls need them; empty for all, if needed_scopes has any.';
COMMENT ON COLUMN source_logins.secret IS 'Tokens, client and server, encrypted with AES-256-GCM. Workers decrypt it to call and renew, the API to revoke.';
DROP TRIGGER source_logins_bump_update ON source_logins;
CREATE TRIGGER source_logins_bump_update AFTER UPDATE ON source_logins FOR EACH ROW
    WHEN ((OLD.login_at, OLD.lost_at, OLD.needed_scopes, OLD.needed_tools) IS DISTINCT FROM (NEW.login_at, NEW.lost_at, NEW.needed_scopes, NEW.needed_tools))
    EXECUTE FUNCTION bump_config_version_row();
