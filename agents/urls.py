from django.urls import path

from agents.web import api, batch_approvals, mcp_sign_in, sandbox, speech, views

app_name = "runs"
urlpatterns = [
    path("approvals/", views.approvals, name="approvals"),
    path("approvals/link/", views.approvals_link, name="approvals_link"),
    path("approvals/new/", views.new_approvals, name="newly_asked"),
    path("approvals/batch/", batch_approvals.batch, name="batch"),
    path(
        "approvals/permissions/<int:pk>/revoke/",
        batch_approvals.revoke_grant,
        name="revoke_grant",
    ),
    path("approvals/<int:pk>/", views.decide, name="decide"),
    path("mcp/<int:pk>/sign-in/", mcp_sign_in.sign_in, name="mcp_sign_in"),
    path("mcp/<int:pk>/sign-out/", mcp_sign_in.sign_out, name="mcp_sign_out"),
    path("mcp/callback/", mcp_sign_in.callback, name="mcp_callback"),
    path("mcp/client.json", mcp_sign_in.client_metadata, name="mcp_client"),
    path("sandbox/diagram/", sandbox.frame, {"kind": "diagram"}, name="diagram_frame"),
    path("sandbox/preview/", sandbox.frame, {"kind": "preview"}, name="preview_frame"),
    path("api/runs/<int:pk>/events/", api.events, name="events"),
    path("api/runs/<int:pk>/speech/", speech.read_aloud, name="speech"),
]
