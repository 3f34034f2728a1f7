"""Who uses the gateway: merchants, their projects and API keys, their sessions and second factors."""
