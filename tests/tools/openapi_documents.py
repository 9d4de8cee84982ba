"""A small API, described as OpenAPI 3.0, 3.1 and Swagger 2.0."""

from typing import Any

SHOP: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1.2"},
    "servers": [
        {
            "url": "https://{region}.shop.example/{base}",
            "variables": {"region": {"default": "eu"}, "base": {"default": "v1"}},
        },
        {"url": "/relative"},
    ],
    "security": [{"key": []}],
    "paths": {
        "/orders": {
            "parameters": [{"$ref": "#/components/parameters/Trace"}],
            "get": {
                "operationId": "listOrders",
                "summary": "List orders",
                "parameters": [
                    {
                        "name": "status[]",
                        "in": "query",
                        "description": "Only these.",
                        "schema": {"type": "array", "items": {"type": "string"}},
                    },
                    {
                        "name": "sort",
                        "in": "query",
                        "style": "pipeDelimited",
                        "explode": False,
                        "schema": {"type": "array", "items": {"type": "string"}},
                    },
                    {
                        "name": "range",
                        "in": "query",
                        "style": "deepObject",
                        "explode": True,
                        "schema": {
                            "type": "object",
                            "properties": {
                                "from": {"type": "string"},
                                "to": {"type": "string"},
                            },
                        },
                    },
                    {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                ],
            },
            "post": {
                "operationId": "orders.create!",
                "description": "Creates an order. " * 100,
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Order"}}
                    },
                },
            },
        },
        "/orders/{order-id}": {
            "get": {
                "summary": "One order",
                "security": [],
                "parameters": [
                    {
                        "name": "order-id",
                        "in": "path",
                        "required": True,
                        "schema": {"type": "string"},
                    }
                ],
            },
            "delete": {"operationId": "deleteOrder", "deprecated": True},
        },
        "/login": {
            "post": {
                "operationId": "login",
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {
                                "type": "object",
                                "required": ["user"],
                                "properties": {
                                    "user": {"type": "string"},
                                    "tags": {"type": "array", "items": {"type": "string"}},
                                },
                            }
                        }
                    }
                },
            }
        },
        "/photo": {
            "put": {
                "operationId": "putPhoto",
                "requestBody": {"required": True, "content": {"image/png": {}}},
            },
            "head": {"operationId": "headPhoto"},
        },
    },
    "components": {
        "parameters": {
            "Trace": {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
        },
        "schemas": {
            "Order": {
                "allOf": [
                    {"$ref": "#/components/schemas/Base"},
                    {
                        "type": "object",
                        "required": ["items", "id"],
                        "properties": {
                            "id": {"type": "integer", "readOnly": True},
                            "items": {
                                "type": "array",
                                "items": {"$ref": "#/components/schemas/Item"},
                            },
                            "note": {"type": "string", "nullable": True},
                            "pay": {
                                "oneOf": [
                                    {
                                        "type": "object",
                                        "properties": {"card": {"type": "string"}},
                                    },
                                    {"type": "string", "pattern": "(?<=x)y"},
                                ],
                                "discriminator": {"propertyName": "kind"},
                            },
                        },
                    },
                ]
            },
            "Base": {"type": "object", "properties": {"customer": {"type": "string"}}},
            "Item": {
                "type": "object",
                "properties": {
                    "price": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
                    "parts": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/Item"},
                    },
                },
            },
        },
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            "query": {"type": "apiKey", "in": "query", "name": "api_key"},
            "oauth": {"type": "oauth2", "flows": {}},
            "basic": {"type": "http", "scheme": "basic"},
        },
    },
}

PETS: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "Pets", "version": "1"},
    "host": "pets.example",
    "basePath": "/v2",
    "schemes": ["http", "https"],
    "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "api_key"}},
    "definitions": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}},
    "paths": {
        "/pets": {
            "get": {
                "operationId": "findPets",
                "parameters": [
                    {
                        "name": "tags",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "csv",
                    },
                    {"name": "limit", "in": "query", "type": "integer", "maximum": 50},
                ],
            },
            "post": {
                "operationId": "addPet",
                "parameters": [
                    {
                        "name": "pet",
                        "in": "body",
                        "required": True,
                        "schema": {"$ref": "#/definitions/Pet"},
                    }
                ],
            },
        },
        "/pets/{id}": {
            "post": {
                "operationId": "renamePet",
                "consumes": ["application/x-www-form-urlencoded"],
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "type": "integer"},
                    {"name": "name", "in": "formData", "required": True, "type": "string"},
                ],
            }
        },
        "/pets/{id}/photo": {
            "post": {
                "operationId": "addPhoto",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "type": "integer"},
                    {"name": "photo", "in": "formData", "type": "file"},
                ],
            }
        },
    },
}

YAML = """
openapi: 3.1.0
info: {title: Notes, version: "1"}
paths:
  /notes/{id}:
    get:
      operationId: readNote
      parameters:
        - {name: id, in: path, required: true, schema: {type: [integer, "null"]}}
      responses:
        200: {description: OK}
"""
