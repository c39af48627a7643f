-- +goose Up

-- Sender and subject of the mail that actions of triage are about, in the
-- messages of channels that people chose.
ALTER TABLE subscriptions ADD COLUMN show_mail boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN subscriptions.show_mail IS 'Messages in Slack about actions of triage show sender and subject of the mail. The worker adds them when it sends: no stored call has them.';

-- subscription_mail returns sender and subject of the message that an action of
-- triage is about, for a subscription that shows mail. It is all that a worker
-- reads of mail.
CREATE FUNCTION subscription_mail(tenant uuid, subscription uuid, action uuid)
    RETURNS TABLE (sender text, sender_name text, subject text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT left(m.sender, 512), left(m.sender_name, 512), left(m.subject, 512)
    FROM countersign_data.subscriptions s
    JOIN countersign_data.actions a ON a.tenant_id = s.tenant_id AND a.action_id = action
    JOIN countersign_data.triage_proposals p ON p.tenant_id = a.tenant_id AND p.external_id = a.external_id AND p.proposal_id = a.action_id
    JOIN countersign_data.triage_messages m ON m.tenant_id = p.tenant_id AND m.message_id = p.message_id
    WHERE s.tenant_id = tenant AND s.subscription_id = subscription AND s.enabled AND s.show_mail
$$;
ALTER FUNCTION subscription_mail(uuid, uuid, uuid) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION subscription_mail(uuid, uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION subscription_mail(uuid, uuid, uuid) TO countersign_worker;
CREATE POLICY triage_messages_owner_subscription ON triage_messages FOR SELECT TO countersign_owner USING (true);
