// A real identity provider with its default settings. It is only told who its client is and what
// it knows about its users, which no provider can do without.
import Provider from "oidc-provider";

const { port, client } = JSON.parse(process.argv[2]);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [client],
  claims: {
    openid: ["sub"],
    profile: ["preferred_username", "given_name", "family_name"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  findAccount: (context, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      preferred_username: id,
      given_name: "Grace",
      family_name: "Hopper",
      email: `${id}@example.org`,
      email_verified: true,
      groups: ["engineers", "administrator"],
    }),
  }),
});

provider.listen(port, "127.0.0.1", () => console.log("listening"));
