-- +goose Up

-- People erase what triage holds of a mail account whose reading is stopped. The
-- account stays; the rows about a message go with the message.
GRANT DELETE ON triage_messages, triage_senders, triage_folders, triage_runs, triage_set_aside TO countersign_api;
GRANT UPDATE (next_run_at, last_run_id, last_started_at, last_ended_at, last_read_at, last_error, failures, corrections_at) ON triage_schedules TO countersign_api;

-- Deleting a message looks for its corrections.
CREATE INDEX triage_corrections_message_idx ON triage_corrections (tenant_id, message_id);
