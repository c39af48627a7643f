-- name: IdentityProviderDelete :execrows
DELETE FROM identity_providers p WHERE p.tenant_id = @tenant_id AND p.provider_id = @provider_id;

-- name: IdentityProviderGet :one
SELECT p.tenant_id, p.provider_id, p.issuer, p.audience, p.clients, p.role_claim, p.roles, p.default_role, p.allowed_domains,
    p.label, p.web_client_id, p.web_client_secret
FROM identity_providers p
WHERE p.tenant_id = @tenant_id AND p.provider_id = @provider_id;

-- name: IdentityProviderPut :exec
INSERT INTO identity_providers (tenant_id, provider_id, issuer, audience, clients, role_claim, roles, default_role, allowed_domains, label, web_client_id,
    web_client_secret)
VALUES (@tenant_id, @provider_id, @issuer, @audience, @clients, @role_claim, @roles, @default_role, @allowed_domains, @label, @web_client_id,
    @web_client_secret)
ON CONFLICT (tenant_id, provider_id)
DO UPDATE SET issuer = excluded.issuer, audience = excluded.audience, clients = excluded.clients, role_claim = excluded.role_claim,
    roles = excluded.roles, default_role = excluded.default_role, allowed_domains = excluded.allowed_domains,
    label = excluded.label, web_client_id = excluded.web_client_id, web_client_secret = excluded.web_client_secret;

-- name: IdentityProviders :many
SELECT p.tenant_id, p.provider_id, p.issuer, p.audience, p.clients, p.role_claim, p.roles, p.default_role, p.allowed_domains,
    p.label, p.web_client_id, p.web_client_secret
FROM identity_providers p
WHERE p.tenant_id = @tenant_id
ORDER BY p.provider_id;
